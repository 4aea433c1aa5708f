// Adds the values of the condition keys for tags in a request, in the form of each service.
//
// Threads: pure functions. Errors: none; members that are absent add nothing.
#pragma once

#include <string>
#include <vector>

#include "auth/access_table.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

// Sets a condition key. Does nothing if `texts` is empty.
void set(ServiceValues& values, std::string name, std::vector<std::string> texts);
// Adds tags: aws:RequestTag/KEY and aws:TagKeys.
void add_tags(std::vector<std::string> keys, std::vector<std::string> values, Accesses& out);
// Adds Batch's tags, which are a map.
void add_tag_map(const shapes::Shape& shape, const void* input, Accesses& out);
// Adds EC2's tags: of the request, or of the resource that it creates. Their values may be missing.
void add_ec2_tags(const shapes::Shape& shape, const void* input, Accesses& out);

}  // namespace trainyard::api
