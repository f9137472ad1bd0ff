// What `tlparse run` would record on this machine, and what stands in its way.
#pragma once

#include <string>
#include <vector>

namespace tlparse {

enum class DoctorState { kYes, kPartly, kNo };

struct DoctorCheck {
  std::string name;  // "structured trace"
  DoctorState state = DoctorState::kYes;
  std::string detail;  // what was found; of kPartly and kNo also why, and what to do
};

// `python`: the program that would be run; `folder`: where the output directory would be made. Starts
// `python` once; writes nothing but a pipe in `folder`, which it removes.
std::vector<DoctorCheck> AskDoctor(const std::string& python, const std::string& folder);

}  // namespace tlparse
