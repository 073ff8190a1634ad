/* Compiles a whole pass for the path that the macros name, and forgets them. See paths.h. */
#include "vectors.h"

#include "products.h"

#include "attention.h"

#include "pass.h"

#undef floats
#undef ints
#undef unsigneds
#undef narrows
#undef MAGIC
#undef TILES
#undef ROWS
#undef FUNCTION
#undef INLINE
#undef NAME
#undef JOIN
#undef JOIN_
#undef PATH
#undef LANES
#undef TARGET
#undef TILE_ROWS
#undef TILE_VECTORS
#undef HEAD_ROWS
#undef HEAD_VECTORS
#undef MULTIPLY_ADD
#undef MAXIMUM
#undef DOT4
#undef DOT8
#undef TILE_PAIR
#undef ROW_VECTORS
#undef LOAD_HALVES
#undef STORE_HALVES
#undef MOST_HALF
