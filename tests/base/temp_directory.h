// A directory that vanishes with the test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace tlparse {

class TempDirectory {
 public:
  TempDirectory() {
    std::string name = std::filesystem::temp_directory_path().string() + "/tlparse-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;  // owns the directory
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }

  // Writes a file (and the directories above it) and returns its full path.
  std::string Write(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream stream(file, std::ios::binary);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!stream.flush()) throw std::runtime_error("cannot write " + file.string());
    return file.string();
  }

 private:
  std::string path_;
};

}  // namespace tlparse
