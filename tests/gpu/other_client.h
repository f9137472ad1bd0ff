// Beside another client of CUPTI in this process, which does what Kineto's CuptiActivityApi.cpp does at
// the start and at the end of a profile of torch.profiler.
#pragma once

#include <cstdio>
#include <functional>
#include <string>

namespace gpu_check {

// The lines of the page.
class Page {
 public:
  void Check(bool is_right, const std::string& what, const std::string& seen = "") {
    std::printf("| %s | %s | %s |\n", is_right ? "ok" : "**WRONG**", what.c_str(), seen.c_str());
    is_wrong_ |= !is_right;
  }
  bool is_wrong() const { return is_wrong_; }

 private:
  bool is_wrong_ = false;
};

// Calls `run_kernel` for one kernel that has ended.
void CheckBesideAnotherClient(Page& page, const std::function<void()>& run_kernel);

}  // namespace gpu_check
