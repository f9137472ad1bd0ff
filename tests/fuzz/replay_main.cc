// Runs a fuzz target once for every file below the folders (or for the files) on the command line.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

bool Replay(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(stream), {});
  if (!stream) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    return false;
  }
  std::fprintf(stderr, "%s\n", path.c_str());  // the last one printed is the one that crashed
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  bool is_good = true;
  for (int i = 1; i < argc; ++i) {
    std::error_code error;
    if (!fs::is_directory(argv[i], error)) {
      is_good &= Replay(argv[i]);
      ++count;
      continue;
    }
    for (fs::recursive_directory_iterator entry(argv[i], error), end; !error && entry != end;
         entry.increment(error)) {
      if (!entry->is_regular_file()) continue;
      is_good &= Replay(entry->path());
      ++count;
    }
    if (error) {
      std::fprintf(stderr, "%s: %s\n", argv[i], error.message().c_str());
      is_good = false;
    }
  }
  std::fprintf(stderr, "%zu inputs\n", count);
  return is_good && count > 0 ? 0 : 1;
}
