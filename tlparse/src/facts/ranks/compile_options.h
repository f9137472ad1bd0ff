// The options that one compile ran with, as its metrics have them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// "dynamo_config[recompile_limit]": "8"; empty: the log does not have them. Where files lie and how
// many processes help is left out.
Result<std::map<std::string, std::string>> OptionsOfCompile(Database& database,
                                                            std::int64_t compile_id);

}  // namespace tlparse
