; What can have a doc comment before it.
(function_declaration name: (_) @name) @target
(generator_function_declaration name: (_) @name) @target
(class_declaration name: (_) @name) @target
(abstract_class_declaration name: (_) @name) @target
(interface_declaration name: (_) @name) @target
(type_alias_declaration name: (_) @name) @target
(enum_declaration name: (_) @name) @target
(class_body (method_definition name: (_) @name) @target)

; A constructor does what its class says.
(class_body (method_definition name: (property_identifier) @_name) @exempt
  (#eq? @_name "constructor"))
