; What can have a doc comment before it.
(function_declaration name: (identifier) @name) @target
(method_declaration name: (field_identifier) @name) @target
(type_declaration . (type_spec name: (type_identifier) @name) .) @target
