#include "cli/role_output.h"

#include <fmt/format.h>

#include "cli/rank_output.h"
#include "facts/job/participants.h"

namespace tlparse {

void PrintRoles(const std::vector<TreeRole>& roles) {
  constexpr std::size_t kMostRoles = 12;
  for (std::size_t i = 0; i < roles.size() && i < kMostRoles; ++i)
    PrintWrapped("role: " + Describe(roles[i]), 0, 2);
  if (roles.size() > kMostRoles)
    PrintWrapped(fmt::format("and {} more roles (--json)", roles.size() - kMostRoles), 0, 2);
}

}  // namespace tlparse
