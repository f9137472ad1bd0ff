#include "cli/version_text.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <simdjson.h>
#include <sqlite3.h>
#include <zip.h>
#include <zlib.h>
#include <zstd.h>

#include "base/version.h"
#include "report/viewer/export.h"
#include "store/schema.h"

namespace tlparse {

std::string VersionText(bool with_parts) {
  std::string text = fmt::format("tlparse {}", kVersion);
  if (!with_parts) return text;
  text += fmt::format("\nschema {} of the database\npage: {}", kSchemaVersion,
                      ViewerPage().empty() ? "none, built without the viewer" : "inside");
  text += fmt::format("\nSQLite {}\nsimdjson {}.{}.{} ({})\nzlib {}\nzstd {}\nlibzip {}\n{}",
                      sqlite3_libversion(), static_cast<int>(simdjson::SIMDJSON_VERSION_MAJOR),
                      static_cast<int>(simdjson::SIMDJSON_VERSION_MINOR),
                      static_cast<int>(simdjson::SIMDJSON_VERSION_REVISION),
                      simdjson::get_active_implementation()->name(), zlibVersion(),
                      ZSTD_versionString(), zip_libzip_version(), OpenSSL_version(OPENSSL_VERSION));
#ifdef __GLIBC__
  text += fmt::format("\nglibc {}.{}", __GLIBC__, __GLIBC_MINOR__);
#endif
#ifdef __clang__
  text += fmt::format("\nclang {}", __clang_version__);
#else
  text += fmt::format("\ng++ {}", __VERSION__);
#endif
  return text;
}

}  // namespace tlparse
