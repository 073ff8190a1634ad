; Members that are still to be written. @body has nothing but @stub and comments, @empty nothing but comments.
(_ body: (block (throw_statement (object_creation_expression type: (_) @_error)) @stub) @body
  (#match? @_error "NotImplementedException$"))
(_ body: (block (throw_statement (object_creation_expression arguments: (argument_list) @_what)) @stub) @body
  (#match? @_what "(?i)not (yet )?implemented|unimplemented|implement me|\\btodo\\b"))
(arrow_expression_clause (throw_expression (object_creation_expression type: (_) @_error)) @expression
  (#match? @_error "NotImplementedException$"))

(method_declaration body: (block) @empty)
(local_function_statement body: (block) @empty)

; A virtual method does nothing by default, and an override may do nothing.
(method_declaration (modifier) @_modifier body: (block) @exempt.empty
  (#match? @_modifier "^(virtual|override|partial)$"))
