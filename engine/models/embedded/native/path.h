/* Compiles a whole pass for the path that the macros name, and forgets them. See paths.h. */
#include "vectors.h"

#include "products.h"

#include "attention.h"

#include "pass.h"

#undef floats
#undef ints
#undef bits
#undef MAGIC
#undef TILES
#undef MORE_TILES
#undef MULTIPLY
#undef STRIP
#undef ROWS
#undef FUNCTION
#undef INLINE
#undef NAME
#undef JOIN
#undef JOIN_
#undef PATH
#undef LANES
#undef TARGET
#undef ROW_VECTORS
#undef TILE_ROWS
#undef TILE_VECTORS
#undef HEAD_ROWS
#undef HEAD_VECTORS
#undef MULTIPLY_ADD
#undef MAXIMUM
#undef LARGEST_OF
#undef WHOLE_SUM_OF
#undef NARROW
#undef ADD_SMALL
#undef WIDEN
#undef ADD_DOT
#undef ADDED_TO_8
#undef LOAD_HALVES
#undef STORE_HALVES
#undef MOST_HALF
