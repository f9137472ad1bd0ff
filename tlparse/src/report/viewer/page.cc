// The bundled page. viewer/CMakeLists.txt makes the file that TLPARSE_VIEWER_PAGE names; without it
// there is no page.
#include "report/viewer/export.h"

namespace tlparse {

std::string_view ViewerPage() {
#ifdef TLPARSE_VIEWER_PAGE
  static constexpr char kPage[] = {
#include TLPARSE_VIEWER_PAGE
  };
  return {kPage, sizeof(kPage)};
#else
  return {};
#endif
}

}  // namespace tlparse
