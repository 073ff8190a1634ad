; Names that a type may use: what is imported, and the classes and aliases of the file.
(import_statement name: [
  (dotted_name . (identifier) @name)
  (aliased_import alias: (identifier) @name)
])
(import_from_statement name: [
  (dotted_name (identifier) @name)
  (aliased_import alias: (identifier) @name)
])
(class_definition name: (identifier) @name)
(class_definition type_parameters: (type_parameter (type (identifier) @name)))
(function_definition type_parameters: (type_parameter (type (identifier) @name)))
(type_alias_statement left: (type (identifier) @name))
(module (expression_statement (assignment left: (identifier) @name)))
(type (identifier) @name)
