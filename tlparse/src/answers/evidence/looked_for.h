// Which of the inputs that a finding's kind looks at (findings/looked_for.h) a run has.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "findings/findings.h"
#include "findings/looked_for.h"
#include "store/database.h"

namespace tlparse {

class LookedForInputs {
 public:
  static Result<LookedForInputs> Load(Database& database, std::int64_t run_id, std::int64_t launch);
  std::vector<LookedFor> Of(const Finding& finding) const;

 private:
  // Ranks by number, logs without rank by name.
  struct People {
    std::set<std::int64_t> ranks;
    std::set<std::string> logs;
    bool are_any = false;  // it is not known who

    bool IsEmpty() const { return ranks.empty() && logs.empty(); }
    bool Has(std::int64_t rank) const { return are_any || ranks.contains(rank); }
    bool Has(const std::string& log) const { return are_any || logs.contains(log); }
    void Add(std::int64_t rank) { ranks.insert(rank); }
    void Add(const std::string& log) { logs.insert(log); }
    std::string Text() const;
  };
  struct Input {
    People there, damaged;
  };

  Result<void> LoadThere(Database& database, std::int64_t run_id, std::int64_t launch,
                         const std::map<std::int64_t, std::string>& names);
  Result<void> LoadLeftOut(Database& database, std::int64_t run_id);
  const Input& Of(LookedInput input) const { return inputs_[static_cast<std::size_t>(input)]; }
  LookedFor Of(const Look& look, const People& whom) const;

  People all_;
  std::array<Input, kLookedInputCount> inputs_;
  bool is_gloo_alone_ = false;  // by its dumps: NCCL has nothing to say of it
};

// "not among the inputs: recorder dump of rank 2, run.json; not known, as it is damaged or cannot be
// read: structured trace of rank 2"; empty: all that was looked for is there.
std::string NotFoundText(const std::vector<LookedFor>& looked_for);

}  // namespace tlparse
