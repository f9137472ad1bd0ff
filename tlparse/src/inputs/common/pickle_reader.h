// Reads a pickle of plain values. Nothing is ever executed or imported: the opcodes that build
// dicts, lists, tuples, text, integers, floats, booleans and None are understood, as PyTorch's C++
// pickler and Python's own write them in protocols 0 to 5; any other opcode ends the reading with a
// problem that names its byte.
#pragma once

#include <string_view>

#include "inputs/common/plain_value.h"

namespace tlparse {

// Whether `bytes` begin like a pickle: of protocol 2 or later, or of a dict or list in protocol 0 or 1.
// No JSON begins so.
bool LooksLikePickle(std::string_view bytes);

// Linear in time, no recursion; memory is bounded by PlainTree's limits, beyond which the reading
// ends with a problem. Bytes after STOP are ignored.
PlainDocument ReadPickle(std::string_view bytes);

}  // namespace tlparse
