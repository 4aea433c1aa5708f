// Formats values of the configuration file for errors: on one line, escaped and shortened.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <string_view>
#include <toml.hpp>

namespace trainyard::config {

// Returns the quoted text, with \n and \u001B for control characters.
std::string format_text(std::string_view text);
// Returns the value as it is written in a file: 7, "a text", [1, 2], {name = "x"}.
std::string format_value(const toml::value& value);
// Returns the type of a value that must not be shown: "a string", "a list".
std::string_view describe_type(const toml::value& value);

// Returns a number without trailing zeros: 0.5, 3600, nan.
std::string format_number(double number);

}  // namespace trainyard::config
