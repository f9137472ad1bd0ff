// Speeds of the building blocks, each the best of several rounds on one core:
// * MD5: one OpenSSL call per message, and every lane kernel of this processor, over sizes like the
//   distinct payloads of real traces (PyTorch 2.6.0 and 2.14.1) in windows of 2 MB, as the import
//   hands them over; and over equal sizes, the kernels alone;
// * the payload table: inserting, finding, and missing, in memory and with spilled runs;
// * repairing JSON, and the look for duplicate members;
// * reading plain, gzip and zstd input.
#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/input.h"
#include "base/json_repair.h"
#include "base/md5.h"
#include "base/md5_lanes.h"
#include "log/payload_index.h"

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

void BenchMd5() {
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

void BenchPayloadIndex() {
  using tlparse::PayloadIndex;
  for (const std::size_t count : {std::size_t{40'000}, std::size_t{4'000'000}}) {
    std::mt19937_64 random(2);
    const auto digest = [&] {
      const std::uint64_t halves[2] = {random(), random()};
      Md5Digest md5;
      std::memcpy(md5.data(), halves, sizeof(halves));
      return md5;
    };
    std::vector<Md5Digest> known(count), unknown(count);
    std::generate(known.begin(), known.end(), digest);
    std::generate(unknown.begin(), unknown.end(), digest);
    PayloadIndex index(std::filesystem::temp_directory_path().string());
    const auto nanoseconds_each = [&](auto function) {
      const auto start = std::chrono::steady_clock::now();
      function();
      const std::chrono::duration<double, std::nano> time =
          std::chrono::steady_clock::now() - start;
      return time.count() / static_cast<double>(count);
    };
    std::size_t found = 0;
    const double insert_ns = nanoseconds_each([&] {
      for (std::size_t i = 0; i < count; ++i) {
        const bool is_new = !index.Find(known[i]);
        if (!is_new || !index.Insert({known[i], i, static_cast<std::uint32_t>(i)})) std::abort();
      }
    });
    const double hit_ns = nanoseconds_each([&] {
      for (const Md5Digest& md5 : known) found += index.Find(md5).has_value();
    });
    const double miss_ns = nanoseconds_each([&] {
      for (const Md5Digest& md5 : unknown) found += index.Find(md5).has_value();
    });
    const double visit_ns = nanoseconds_each([&] {
      std::uint64_t sum = 0;
      if (!index.ForEachSorted([&](const PayloadIndex::Entry& entry) { sum += entry.id; }) ||
          sum != std::uint64_t{count} * (count - 1) / 2) {
        std::abort();
      }
    });
    if (found != count) std::abort();
    std::printf("payload index of %zu: insert %.0f, hit %.0f, miss %.0f, sorted visit %.0f ns\n",
                count, insert_ns, hit_ns, miss_ns, visit_ns);
  }
}

// An envelope like compilation_metrics: numbers, strings, lists, `member_count` members.
std::string Envelope(int member_count) {
  std::string text = R"({"compilation_metrics": {)";
  for (int i = 0; i < member_count; ++i) {
    text += (i > 0 ? ", \"" : "\"") + std::string("some_metric_of_the_compile_") +
            std::to_string(i) + "\": ";
    text += i % 3 == 0   ? "\"torch._inductor.config\""
            : i % 3 == 1 ? "12345678"
                         : "[1.5, null, true]";
  }
  return text + R"(}, "rank": 0, "frame_id": 1, "frame_compile_id": 2, "attempt": 0})";
}

void BenchJson() {
  for (const int member_count : {3, 500}) {
    const std::string text = Envelope(member_count);
    const std::size_t count = (8 << 20) / text.size();
    const double repair = BestGigabytesPerSecond(count * text.size(), [&] {
      for (std::size_t i = 0; i < count; ++i) {
        if (!tlparse::RepairJson(text)) std::abort();
      }
    });
    simdjson::dom::parser parser;
    const simdjson::padded_string padded(text);
    const double parse = BestGigabytesPerSecond(count * text.size(), [&] {
      for (std::size_t i = 0; i < count; ++i) {
        if (parser.parse(padded).error() != simdjson::SUCCESS) std::abort();
      }
    });
    const double parse_and_look = BestGigabytesPerSecond(count * text.size(), [&] {
      for (std::size_t i = 0; i < count; ++i) {
        if (tlparse::HasDuplicateMembers(parser.parse(padded).value())) std::abort();
      }
    });
    std::printf(
        "json of %zu bytes, %d members: repair %.2f, parse %.2f, parse + duplicates %.2f GB/s\n",
        text.size(), member_count, repair, parse, parse_and_look);
  }
}

// Reads the files named on the command line.
void BenchInput(const char* path) {
  std::vector<char> buffer(2 << 20);
  std::size_t total = 0;
  std::string compression;
  const auto read_all = [&] {
    auto input = tlparse::OpenInput(path);
    if (!input) {
      std::fprintf(stderr, "%s\n", input.error().message.c_str());
      std::exit(2);
    }
    compression = (*input)->compression();
    total = 0;
    for (;;) {
      const auto count = (*input)->Read(buffer.data(), buffer.size());
      if (!count || *count == 0) break;
      total += *count;
    }
  };
  read_all();
  const double speed = BestGigabytesPerSecond(total, read_all);
  std::printf("input %-5s %.2f GB/s (%zu bytes after decompression)\n", compression.c_str(), speed,
              total);
}

}  // namespace

int main(int argc, char** argv) {
  BenchMd5();
  BenchPayloadIndex();
  BenchJson();
  for (int i = 1; i < argc; ++i) BenchInput(argv[i]);
}
