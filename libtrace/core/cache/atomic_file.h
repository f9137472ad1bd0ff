// Whole files: read, and replaced in one step.
#pragma once

#include <string>
#include <string_view>

#include "libtrace/export.h"
#include "libtrace/status.h"

namespace libtrace {
namespace detail LIBTRACE_EXPORT {

Status ReadFile(const std::string& path, std::string& bytes);

// Readers see the old file or the new one. Written beside (a name with a leading dot) and renamed.
// Not synced: after a power cut the file can be damaged, which the checksums of its readers find.
Status WriteFileAtomically(const std::string& path, std::string_view bytes);

}  // namespace LIBTRACE_EXPORT
}  // namespace libtrace
