// Findings that compare ranks, role by role. Internal to findings.
#pragma once

#include <vector>

#include "base/result.h"
#include "facts/job/roles.h"
#include "findings/context.h"

namespace tlparse {

// Adds what the family finds in each role to the findings of the job. Where the roles are not known,
// all ranks are compared, and what would be a warning becomes a note that says so. The answers of the
// roles are loaded once.
class RoleComparisons {
 public:
  // `job`: of all ranks.
  static Result<RoleComparisons> Make(FindingContext& job);

  Result<void> Run(FindingFamily family);
  // What must be equal across roles: versions and options.
  Result<void> RunAcrossRoles(FindingFamily family);
  bool HasSeveral() const { return roles_->size() > 1; }
  // Sets Finding::roles where there are several.
  void NameRoles(Finding& finding) const;

 private:
  explicit RoleComparisons(FindingContext& job) : job_(job) {}
  void MakeNotes(std::size_t first) const;

  FindingContext& job_;
  const std::vector<Role>* roles_ = nullptr;  // of the job
  std::vector<RanksAnswer> answers_;  // of the roles with several ranks, if there are several roles
};

}  // namespace tlparse
