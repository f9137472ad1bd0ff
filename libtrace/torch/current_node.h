// The graph node that this thread executes, for op_observer.h; null if none is known. The name must
// outlive its time.
#pragma once

#include <string>

namespace libtrace {

const std::string* CurrentNode() noexcept;
void SetCurrentNode(const std::string* name) noexcept;

}  // namespace libtrace
