// The page as it is served: it asks the API, and its policy is sent as a header too, which can say
// more.
#pragma once

#include <httplib.h>

#include <string>

namespace tlparse {

class LiveState;

struct ServedPage {
  std::string html;
  std::string policy;
};

// `live`: of a job that is watched; else nullptr.
ServedPage MakeServedPage(const LiveState* live);
// Of every response.
httplib::Headers HeadersOf(const ServedPage& page);

}  // namespace tlparse
