#include "runner/hook.h"

namespace tlparse {

std::string_view HookText() {
  static constexpr char kText[] =
#include "runner_changes.inc"
#include "runner_exceptions.inc"
#include "runner_groups.inc"
#include "runner_hook.inc"
      ;
  return {kText, sizeof kText - 1};
}

std::string_view NumbersText() {
  static constexpr char kText[] =
#include "runner_numbers.inc"
      ;
  return {kText, sizeof kText - 1};
}

}  // namespace tlparse
