; What can have a docstring: its body's first statement, @first, may be one.
(function_definition name: (identifier) @name body: (block . (_) @first)) @target
(class_definition name: (identifier) @name body: (block . (_) @first)) @target

; The docstring of a property is its getter's, and overloads have none.
(decorated_definition
  (decorator [
    (identifier) @_name
    (attribute attribute: (identifier) @_name)
  ])
  definition: (function_definition body: (block . (_) @exempt))
  (#any-of? @_name "setter" "deleter" "overload"))
