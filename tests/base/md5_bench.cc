// Speed of MD5: one OpenSSL call per message, and every lane kernel of this processor, over a mix
// like the distinct payloads of real traces (PyTorch 2.6.0 and 2.14.1) in windows of 2 MB, as the
// import hands them over. Prints GB/s, the best of several rounds.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/md5.h"
#include "base/md5_lanes.h"

namespace {

using tlparse::Md5Digest;

constexpr std::size_t kTotalBytes = 64 << 20, kWindowBytes = 2 << 20;

// Sizes in bytes of 41,905 distinct payloads at these quantiles.
struct Quantile {
  double below, size_bytes;
};
constexpr Quantile kSizes[] = {
    {0, 6},       {.01, 129},    {.05, 140},     {.1, 144},      {.3, 153},       {.5, 166},
    {.7, 182},    {.8, 182},     {.9, 488},      {.95, 6166},    {.97, 30549},    {.98, 73992},
    {.99, 75269}, {.995, 77198}, {.998, 101096}, {.999, 117577}, {.9995, 176274}, {1, 260494}};

std::size_t SizeAt(double quantile) {
  const Quantile* next = kSizes + 1;
  while (next->below < quantile) ++next;
  const Quantile& previous = next[-1];
  const double part = (quantile - previous.below) / (next->below - previous.below);
  return static_cast<std::size_t>(previous.size_bytes *
                                  std::pow(next->size_bytes / previous.size_bytes, part));
}

template <typename Function>
double BestGigabytesPerSecond(std::size_t bytes, Function function) {
  double best = 0;
  for (int round = 0; round < 7; ++round) {
    const auto start = std::chrono::steady_clock::now();
    function();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(bytes) / seconds.count() / 1e9);
  }
  return best;
}

}  // namespace

int main() {
  std::mt19937_64 random(1);
  std::string bytes(kTotalBytes, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  std::uniform_real_distribution<double> quantile(0, 1);
  std::vector<std::vector<std::string_view>> windows(1);
  std::vector<Md5Digest> digests;
  std::size_t used = 0, window_used = 0, count = 0;
  while (used < bytes.size()) {
    const std::size_t size = std::min(SizeAt(quantile(random)), bytes.size() - used);
    if (window_used + size > kWindowBytes && !windows.back().empty()) {
      windows.emplace_back();
      window_used = 0;
    }
    windows.back().emplace_back(bytes.data() + used, size);
    used += size;
    window_used += size;
    ++count;
    digests.resize(std::max(digests.size(), windows.back().size()));
  }
  std::printf("%zu messages, %zu bytes, %zu windows\n", count, used, windows.size());
  std::printf("%-8s %6.2f GB/s\n", "openssl", BestGigabytesPerSecond(used, [&] {
                for (const auto& window : windows) {
                  for (std::size_t i = 0; i < window.size(); ++i)
                    digests[i] = tlparse::Md5(window[i]);
                }
              }));
  for (const tlparse::Md5Kernel& kernel : tlparse::SupportedMd5Kernels()) {
    std::printf("%-8s %6.2f GB/s\n", std::string(kernel.name).c_str(),
                BestGigabytesPerSecond(used, [&] {
                  for (const auto& window : windows) tlparse::Md5ManyWith(kernel, window, digests);
                }));
  }
  // Equal lengths: the kernels alone.
  for (const std::size_t size : {std::size_t{163}, std::size_t{1000}, std::size_t{20000}}) {
    std::vector<std::string_view> equal;
    for (std::size_t i = 0; i < kWindowBytes / size / 16 * 16; ++i)
      equal.emplace_back(bytes.data() + i * size, size);
    digests.resize(std::max(digests.size(), equal.size()));
    for (const tlparse::Md5Kernel& kernel : tlparse::SupportedMd5Kernels()) {
      std::printf("%-8s %6.2f GB/s, all %zu bytes\n", std::string(kernel.name).c_str(),
                  BestGigabytesPerSecond(equal.size() * size,
                                         [&] { tlparse::Md5ManyWith(kernel, equal, digests); }),
                  size);
    }
  }
}
