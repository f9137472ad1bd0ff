// The SQL behind each chunk of the viewer.
#pragma once

#include <span>
#include <string_view>

#include "report/viewer_chunk.h"

namespace tlparse {

// How the part of a chunk's name behind the slash becomes the parameters :first and :last.
enum class ChunkRange {
  kNone,     // no such part
  kItem,     // an id; :first = :last = id, or the block of the layout that begins there
  kPer1024,  // n: ids n·1024 … n·1024+1023
  kPer4096,
};

struct ViewerChunkSpec {
  std::string_view name;
  ChunkRange range;
  std::span<const ViewerTable> tables;
};

// All chunks but texts. Parameters: :run, :origin (microseconds), :first, :last.
std::span<const ViewerChunkSpec> ViewerChunkSpecs();

}  // namespace tlparse
