// Dynamo's graphs without numbers: those that differ in numbers alone, as by sizes of data or by a
// constant of the rank, are of one program.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/result.h"
#include "facts/job/job.h"
#include "store/database.h"

namespace tlparse {

class GraphForms {
 public:
  // Of the graphs of slots that have several. They are loaded once for a job, and live as long as it.
  static Result<const GraphForms*> Load(Database& database, const Job& job);

  // The same content id for graphs of one form.
  std::int64_t FormOf(std::int64_t content_id) const {
    const auto found = form_of_.find(content_id);
    return found == form_of_.end() ? content_id : found->second;
  }

 private:
  std::unordered_map<std::int64_t, std::int64_t> form_of_;
};

}  // namespace tlparse
