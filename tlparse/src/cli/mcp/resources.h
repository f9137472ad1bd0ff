// The resources of `tlparse mcp`: the schema of the database with its comments, the findings, the documents and playbooks; and the
// list of its prompts, which are the playbooks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json_writer.h"

namespace tlparse {

// {"resources": […]}, {"resourceTemplates": […]}
void WriteResources(JsonWriter& json);
void WriteResourceTemplates(JsonWriter& json);
// {"prompts": […]}
void WritePrompts(JsonWriter& json);
std::string_view MimeTypeOf(std::string_view uri);
// A resource that is in the program; nothing: it is none of these.
std::optional<std::string> EmbeddedResource(std::string_view uri);
// Prints a resource that is made of a database; returns an exit code.
int PrintResource(const std::string& database, const std::string& uri);

}  // namespace tlparse
