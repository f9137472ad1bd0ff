// The last part of verifying: what the families find out about records on their own.
#pragma once

#include <string>
#include <vector>

#include "artifacts/prepared_record.h"
#include "import/router.h"
#include "log/window.h"

namespace tlparse {

// One for each thread.
class RecordPreparer {
 public:
  // For each record of the verified window; `prepared` is overwritten. Texts that are known already
  // are left out: what they say is known as well.
  void Prepare(const Window& window, std::vector<PreparedRecord>& prepared);

 private:
  FamilyFinder finder_;
  std::string buffer_;
};

}  // namespace tlparse
