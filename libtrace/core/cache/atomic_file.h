// Reads whole files, and replaces them atomically.
#pragma once

#include <string>
#include <string_view>

#include "libtrace/cache/cache_store.h"
#include "libtrace/export.h"
#include "libtrace/status.h"

namespace libtrace {
namespace detail LIBTRACE_EXPORT {

Status ReadFile(const std::string& path, std::string& bytes);

// `size_bytes` of a file from `offset` on, or what there is, in pieces. The descriptor's position
// stays.
Status ReadChunks(int fd, ChunkSink sink, uint64_t offset = 0, uint64_t size_bytes = UINT64_MAX);

// A file without a name, in `directory` ("" = where temporary files go), filled by `source`.
Status WriteUnnamedFile(const std::string& directory, ArtifactSource source, int& fd);

// Readers see the old file or the new one: it is written under a name with a leading dot and
// renamed. Not synced: after a power failure the file can be damaged, which its readers find by
// checksums.
Status WriteFileAtomically(const std::string& path, std::string_view bytes);
Status WriteFileAtomically(const std::string& path, ArtifactSource source);

}  // namespace LIBTRACE_EXPORT
}  // namespace libtrace
