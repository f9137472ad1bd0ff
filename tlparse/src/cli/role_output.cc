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

void WriteRoles(JsonWriter& json, const std::vector<TreeRole>& roles) {
  json.Key("roles").BeginArray();
  for (const TreeRole& role : roles) {
    json.BeginObject().Key("name").String(role.name).Key("evidence").String(role.evidence);
    json.Key("is_sure").Bool(role.is_sure).Key("count");
    json.Int(static_cast<std::int64_t>(role.ranks.size())).Key("ranks");
    json.String(FormatRankRanges(role.ranks)).EndObject();
  }
  json.EndArray();
}

}  // namespace tlparse
