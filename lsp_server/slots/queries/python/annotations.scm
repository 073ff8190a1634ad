; Functions with their parameters: @untyped have no annotation, @typed have the annotation @type.
(function_definition
  name: (identifier) @name
  parameters: (parameters) @parameters
  return_type: (type)? @returns
  body: (block) @body) @function

(parameters (identifier) @untyped)
(parameters (default_parameter name: (identifier) @untyped value: (_) @value))
(parameters (list_splat_pattern (identifier) @untyped))
(parameters (dictionary_splat_pattern (identifier) @untyped))

(parameters (typed_parameter . (identifier) @typed type: (type) @type))
(parameters (typed_parameter . (list_splat_pattern (identifier) @typed) type: (type) @type))
(parameters (typed_parameter . (dictionary_splat_pattern (identifier) @typed) type: (type) @type))
(parameters (typed_default_parameter name: (identifier) @typed type: (type) @type value: (_) @value))

; A setter's value has the type of its property.
(decorated_definition
  (decorator (attribute attribute: (identifier) @_setter))
  definition: (function_definition parameters: (parameters) @exempt.types)
  (#eq? @_setter "setter"))
