#include "fleet/temporary_database.h"

#include <cstdlib>
#include <filesystem>

namespace tlparse {

Result<std::unique_ptr<TemporaryDatabase>> TemporaryDatabase::Make() {
  std::error_code error;
  std::string folder = (std::filesystem::temp_directory_path(error) / "tlparse-XXXXXX").string();
  if (error || mkdtemp(folder.data()) == nullptr)
    return Fail(ErrorCode::kIo, "no temporary directory can be made for a pulled run");
  return std::make_unique<TemporaryDatabase>(std::move(folder));
}

TemporaryDatabase::TemporaryDatabase(std::string folder)
    : folder_(std::move(folder)),
      path_(folder_ + "/trace.db"),
      remove_folder_(folder_),
      remove_(path_) {}

TemporaryDatabase::~TemporaryDatabase() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

}  // namespace tlparse
