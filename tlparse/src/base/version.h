#pragma once

namespace tlparse {

// Of the program; run.tool_version says which one wrote a run's rows.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace tlparse
