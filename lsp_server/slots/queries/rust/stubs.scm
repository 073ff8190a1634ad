; Functions that are still to be written. @body has nothing but @stub and comments, @empty nothing but comments.
(function_item body: (block (macro_invocation macro: (identifier) @_macro) @stub) @body
  (#any-of? @_macro "todo" "unimplemented"))
(function_item body: (block (expression_statement (macro_invocation macro: (identifier) @_macro)) @stub) @body
  (#any-of? @_macro "todo" "unimplemented"))
(function_item body: (block [
    (macro_invocation macro: (identifier) @_macro (token_tree) @_what) @stub
    (expression_statement (macro_invocation macro: (identifier) @_macro (token_tree) @_what)) @stub
  ]) @body
  (#eq? @_macro "panic")
  (#match? @_what "(?i)not (yet )?implemented|unimplemented|implement me|\\btodo\\b"))

(function_item name: (identifier) @_name body: (block) @empty
  (#not-match? @_name "^(noop|nop|drop)$"))

; A method of a trait does nothing by default.
(trait_item body: (declaration_list) @exempt.empty)
