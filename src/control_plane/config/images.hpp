// Reads the tables about images: [images.NAME], [image_policy] and [[registry]].
//
// Threads: pure, except for the password files of registries and the Python environments of images.
// Errors:  invalid, with the key and the expected value; those of files.
#pragma once

#include <string>

#include "config/config.hpp"
#include "config/table.hpp"

namespace trainyard::config {

// `directory` is the configuration file's, with a slash at its end.
Result<void> read_images(Table& root, const std::string& directory, Config& config);

}  // namespace trainyard::config
