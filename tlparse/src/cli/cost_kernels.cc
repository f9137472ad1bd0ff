// What `tlparse cost` says of the kernels and devices of a profile.
#include <fmt/format.h>

#include <algorithm>

#include "cli/cost_output.h"
#include "cli/rank_output.h"
#include "cli/shares.h"
#include "cli/terminal.h"

namespace tlparse {

namespace {

// What enqueued the work of devices.
void PrintLaunches(const CostProfile& profile) {
  const double all_us = profile.device_in_calls_us + profile.device_outside_us +
                        profile.device_unknown_us + profile.device_replay_us;
  const auto part = [&](double us) {
    return fmt::format("{} ({})", HumanMicroseconds(us), Percent(us / std::max(all_us, 1e-9)));
  };
  std::string line = fmt::format("on devices {} enqueued by calls of compiled graphs, {} outside",
                                 part(profile.device_in_calls_us), part(profile.device_outside_us));
  if (profile.device_replay_us > 0)
    line += fmt::format(", {} in replays of CUDA graphs, whose ops the file does not hold",
                        part(profile.device_replay_us));
  if (profile.device_unknown_us > 0)
    line += fmt::format(", {} unknown: the file does not hold their launch or graph call",
                        part(profile.device_unknown_us));
  PrintLine(line, 2);
  if (profile.replays > 0)
    PrintLine(
        fmt::format("{} of it ran from CUDA graphs, in {}{}", part(profile.device_in_graphs_us),
                    Count(static_cast<std::size_t>(profile.replays), "replay"),
                    profile.steps > 1
                        ? fmt::format(" ({:.1f} a step)", static_cast<double>(profile.replays) /
                                                              static_cast<double>(profile.steps))
                        : std::string()),
        2);
}

void PrintDevice(const CostProfile& profile, const CostProfile::Device& device) {
  const std::string_view when = device.has_own_steps ? " in its own steps"
                                : profile.steps > 0  ? " while the steps ran on the CPU"
                                                     : "";
  PrintLine(
      fmt::format("device {}: {}{}{}, busy (kernels, copies) {}, idle {} ({})", device.device,
                  Count(static_cast<std::size_t>(device.kernels), "kernel"), when,
                  profile.steps > 0 ? fmt::format(" ({})", HumanMicroseconds(device.window_us))
                                    : std::string(),
                  HumanMicroseconds(device.busy_us), HumanMicroseconds(device.idle_us),
                  Percent(device.idle_us / std::max(device.window_us, 1e-9))),
      2);
}

}  // namespace

void PrintKernels(const CostProfile& profile, CostBy by) {
  if (!profile.kernel_us) {
    PrintLine(!profile.problems.empty() ? "kernels: none in what could be read of the file"
              : profile.steps > 0 && !profile.devices.empty() ? "kernels: these steps enqueued none"
              : profile.compiled_us > 0 || profile.unmarked_us > 0
                  ? "kernels: none was recorded (on CPUs "
                    "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE=1 makes them visible)"
              : by == CostBy::kOp ? "kernels: none was recorded"
                                  : "kernels: none was recorded; for what ran without compiled "
                                    "graphs on the CPU see 'tlparse cost --by op'",
              2);
  } else {
    const double us = *profile.kernel_us, joined_us = profile.joined_kernel_us;
    const std::string whose =
        !profile.process_id && joined_us == 0 ? "no log of this process says where they are from"
        : joined_us == us                     ? "all of them kernels of a log or package"
                          : fmt::format("of which {} belong to a kernel of a log or package",
                                        HumanMicroseconds(joined_us));
    const bool is_enqueued = profile.steps > 0 && !profile.devices.empty();
    PrintLine(fmt::format("kernels{} {}, {}", is_enqueued ? " that these steps enqueued:" : "",
                          HumanMicroseconds(us), whose),
              2);
    if (!profile.devices.empty()) PrintLaunches(profile);
    if (profile.collective_us > 0)
      PrintLine(fmt::format("{} of it in kernels of collectives, which wait for other ranks too",
                            HumanMicroseconds(profile.collective_us)),
                2);
  }
  if (profile.wait_us > 0)
    PrintLine(fmt::format("waits for collectives (wait_tensor) {}: no kernel time",
                          HumanMicroseconds(profile.wait_us)),
              2);
  for (const CostProfile::Device& device : profile.devices) PrintDevice(profile, device);
}

}  // namespace tlparse
