// Formats values of the configuration file for errors: on one line, escaped and shortened.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <string_view>
#include <toml.hpp>

namespace trainyard::config {

// "a text", with \n and \u001B for control characters.
std::string format_text(std::string_view text);
// As a file would have the value: 7, "a text", [1, 2], {name = "x"}.
std::string format_value(const toml::value& value);
// The type of a value that must not be shown: "a string", "a list".
std::string_view describe_type(const toml::value& value);

// A number without trailing zeros: 0.5, 3600, nan.
std::string format_number(double number);

}  // namespace trainyard::config
