#include "facts/ranks/job_facts.h"

#include <string>
#include <vector>

#include "facts/job/role_members.h"
#include "facts/ranks/ends.h"
#include "queries/facts/ranks/job_facts.h"

namespace tlparse {
namespace {

Result<void> WriteRoles(Database& database, const Job& job, const std::vector<Role>& roles) {
  ASSIGN_OR_RETURN(auto set, PreparedCommand<SetRole>::Make(database));
  std::int64_t ordinal = 0;
  for (const Role& role : roles) {
    RETURN_IF_ERROR(Execute<AddRole>(database, {.run_id = job.run_id(),
                                                .launch = job.launch(),
                                                .ordinal = ++ordinal,
                                                .name = role.name,
                                                .is_sure = role.is_sure,
                                                .evidence = role.evidence}));
    for (const RankIndex member : role.members) {
      for (const std::int64_t process :
           job.participants()[static_cast<std::size_t>(member)].process_ids)
        RETURN_IF_ERROR(set.Run({.process_id = process,
                                 .run_id = job.run_id(),
                                 .launch = job.launch(),
                                 .ordinal = ordinal}));
    }
  }
  return {};
}

Result<void> WriteEnds(Database& database, const JobStatus& job) {
  ASSIGN_OR_RETURN(const std::vector<ProcessEnd> ends, FindProcessEnds(job));
  ASSIGN_OR_RETURN(auto add, PreparedCommand<AddEnd>::Make(database));
  for (const ProcessEnd& end : ends)
    RETURN_IF_ERROR(add.Run({.process_id = end.process_id,
                             .kind = Name(end.kind),
                             .last_us = end.last_us,
                             .exit_code = end.exit_code,
                             .signal = end.signal,
                             .is_bystander = end.is_bystander,
                             .ended_by = end.ended_by_process_id,
                             .evidence = end.evidence}));
  return {};
}

Result<void> Write(Database& database, std::int64_t run_id, bool is_live) {
  RETURN_IF_ERROR(Execute<ClearRolesOfProcesses>(database, {.run_id = run_id}));
  RETURN_IF_ERROR(Execute<RemoveRoles>(database, {.run_id = run_id}));
  RETURN_IF_ERROR(Execute<RemoveEnds>(database, {.run_id = run_id}));
  ASSIGN_OR_RETURN(const std::string name, NameOfRun(database, run_id));
  ASSIGN_OR_RETURN(const std::vector<Launch> launches, LoadLaunches(database, run_id));
  for (const Launch& launch : launches) {
    const Result<Job> job = Job::Load(database, name, launch.ordinal);
    if (!job && job.error().code == ErrorCode::kNotFound) continue;
    if (!job) return tl::unexpected<Error>(job.error());
    ASSIGN_OR_RETURN(const LogDamage damage, FindLogDamage(database, *job));
    ASSIGN_OR_RETURN(const std::vector<Role>* const roles, LoadRoles(database, *job, damage));
    RETURN_IF_ERROR(WriteRoles(database, *job, *roles));
    if (is_live) continue;
    ASSIGN_OR_RETURN(const JobStatus status, JobStatus::Load(database, *job, damage));
    RETURN_IF_ERROR(WriteEnds(database, status));
  }
  return Execute<SetRoleCounts>(database, {.run_id = run_id});
}

}  // namespace

Result<void> WriteJobFacts(Database& database, std::int64_t run_id) {
  return Write(database, run_id, false);
}

Result<void> WriteLiveJobFacts(Database& database, std::int64_t run_id) {
  return Write(database, run_id, true);
}

}  // namespace tlparse
