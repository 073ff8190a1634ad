; Methods that are still to be written. @body has nothing but @stub and comments, @empty nothing but comments.
(_ body: (_ (throw_statement (object_creation_expression type: (type_identifier) arguments: (argument_list) @_what)) @stub) @body
  (#match? @_what "(?i)not (yet )?implemented|unimplemented|implement me|\\btodo\\b"))
(_ body: (_ (throw_statement (object_creation_expression type: (type_identifier) @_error)) @stub) @body
  (#match? @_error "^NotImplemented"))

(method_declaration name: (identifier) @_name body: (block) @empty
  (#not-match? @_name "(?i)^noop$"))

; A method of an interface does nothing by default.
(interface_body) @exempt.empty
