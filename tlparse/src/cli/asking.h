// What `tlparse try` and `tlparse bisect` say and ask before they run anything.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "answers/experiment/outcome.h"
#include "base/result.h"

namespace tlparse {

// The finding of this id, or the only one of this kind, among those and their evidence. kNotFound,
// kUsage: there is none, or there are several.
Result<const Finding*> ChooseFinding(const std::vector<Finding>& findings, const std::string& name);

// A line to standard error: "change    x = 1".
void SayOfPlan(std::string_view name, const std::string& text);
// The command, its directory and its variables.
void SayCommand(const RecordedCommand& command);

// False: the user said no. kUsage: nobody can be asked. `command`: "try".
Result<bool> Ask(std::string_view command);

}  // namespace tlparse
