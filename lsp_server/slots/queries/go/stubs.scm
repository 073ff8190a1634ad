; Functions that are still to be written. @body has nothing but @stub and comments, @empty nothing but comments.
(_ body: (block (statement_list
    (expression_statement (call_expression function: (identifier) @_call arguments: (argument_list) @_what)) @stub)) @body
  (#eq? @_call "panic")
  (#match? @_what "(?i)not (yet )?implemented|unimplemented|implement me|\\btodo\\b"))

(function_declaration name: (identifier) @_name body: (block) @empty
  (#not-match? @_name "(?i)^(noop|nop|init)"))
; A method such as isNode() {} marks its type.
(method_declaration name: (field_identifier) @_name body: (block) @empty
  (#not-match? @_name "^(is[A-Z]|[nN]o[oO]p)"))
