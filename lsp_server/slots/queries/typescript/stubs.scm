; Functions that are still to be written. @body has nothing but @stub and comments, @empty nothing but comments.
(_ body: (statement_block (throw_statement (new_expression constructor: (_) @_error arguments: (arguments) @_what)) @stub) @body
  (#match? @_what "(?i)not (yet )?implemented|unimplemented|implement me|\\btodo\\b"))
(_ body: (statement_block (throw_statement (new_expression constructor: (identifier) @_error)) @stub) @body
  (#match? @_error "(?i)^(NotImplemented|Unimplemented)"))
(_ body: (statement_block (throw_statement (call_expression function: (identifier) @_error arguments: (arguments) @_what)) @stub) @body
  (#match? @_what "(?i)not (yet )?implemented|unimplemented|implement me|\\btodo\\b"))

(function_declaration name: (identifier) @_name body: (statement_block) @empty
  (#not-match? @_name "(?i)^_?(noop|no_op|nop|empty)"))
(generator_function_declaration body: (statement_block) @empty)
(method_definition name: (_) @_name body: (statement_block) @empty
  (#not-match? @_name "(?i)^(constructor|_?noop)$"))
(variable_declarator name: (identifier) @_name
  value: [
    (arrow_function body: (statement_block) @empty)
    (function_expression body: (statement_block) @empty)
  ]
  (#not-match? @_name "(?i)^_?(noop|no_op|nop|empty)"))
