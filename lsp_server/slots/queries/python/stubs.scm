; Functions that are still to be written. @body has nothing but @stub, a docstring and comments.
(function_definition body: (block (pass_statement) @stub) @body)
(function_definition body: (block (expression_statement (ellipsis)) @stub) @body)
(function_definition body: (block (raise_statement (identifier) @_error) @stub) @body
  (#eq? @_error "NotImplementedError"))
(function_definition body: (block (raise_statement (call function: (identifier) @_error)) @stub) @body
  (#eq? @_error "NotImplementedError"))

; Abstract methods and overloads have no body of their own.
(decorated_definition
  (decorator [
    (identifier) @_name
    (attribute attribute: (identifier) @_name)
    (call function: (identifier) @_name)
    (call function: (attribute attribute: (identifier) @_name))
  ])
  definition: (function_definition) @exempt
  (#match? @_name "^(abstract.*|overload)$"))

; Nor have the methods of a protocol.
(class_definition
  superclasses: (argument_list [
    (identifier) @_base
    (attribute attribute: (identifier) @_base)
    (subscript value: (identifier) @_base)
    (subscript value: (attribute attribute: (identifier) @_base))
  ])
  body: (block) @exempt
  (#match? @_base "^(Protocol|Interface)$"))
