; Functions with their parameters: @untyped have no annotation, @typed have the annotation @type.
(function_declaration
  name: (_) @name parameters: (formal_parameters) @parameters
  return_type: (type_annotation (_) @returns)? body: (statement_block) @body) @function
(generator_function_declaration
  name: (_) @name parameters: (formal_parameters) @parameters
  return_type: (type_annotation (_) @returns)? body: (statement_block) @body) @function
(method_definition
  name: (_) @name parameters: (formal_parameters) @parameters
  return_type: (type_annotation (_) @returns)? body: (statement_block) @body) @function
(variable_declarator name: (identifier) @name !type
  value: [
    (arrow_function parameters: (formal_parameters) @parameters
      return_type: (type_annotation (_) @returns)? body: (_) @body)
    (function_expression parameters: (formal_parameters) @parameters
      return_type: (type_annotation (_) @returns)? body: (_) @body)
  ] @function)

; The type of a parameter with a value is that of the value.
(formal_parameters (required_parameter pattern: (identifier) @untyped !type !value))
(formal_parameters (required_parameter pattern: (rest_pattern (identifier) @untyped) !type))
(formal_parameters (optional_parameter pattern: (identifier) @untyped !type))

(formal_parameters (required_parameter pattern: (identifier) @typed type: (type_annotation (_) @type)))
(formal_parameters (required_parameter pattern: (rest_pattern (identifier) @typed) type: (type_annotation (_) @type)))
(formal_parameters (optional_parameter pattern: (identifier) @typed type: (type_annotation (_) @type)))

; Constructors and setters return nothing, and say so by themselves.
(method_definition name: (property_identifier) @_name parameters: (formal_parameters) @exempt.returns
  (#eq? @_name "constructor"))
(method_definition "set" parameters: (formal_parameters) @exempt.returns)
; The functions of an object take their types from where the object goes.
(object (method_definition parameters: (formal_parameters) @exempt))
