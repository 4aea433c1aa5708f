// The one program that people type: the server and what belongs to operating it.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trainyard/data_directory.hpp"
#include "trainyard/doctor.hpp"
#include "trainyard/environment.hpp"
#include "trainyard/serve.hpp"

namespace {

using namespace trainyard;

constexpr const char* kHelp = R"help(trainyard: a training cloud that you own

  trainyard serve [--data DIR] [--listen ADDRESS:PORT] [--config FILE]
      Run the server. One port speaks plain HTTP and TLS; jobs outlive it.
  trainyard env [--data DIR]
      Print shell exports with which AWS clients find the server:  eval "$(trainyard env)"
  trainyard doctor [--data DIR] [--clean]
      Say what this machine can do and what to install; with --clean, sweep what a crash left.

The data directory is --data, else $TRAINYARD_DATA, else ~/.local/share/trainyard.
)help";

struct Arguments {
  std::string command;
  std::map<std::string, std::string> values;  // --name value
  std::map<std::string, bool> flags;          // --name
};

Result<Arguments> read_arguments(const std::vector<std::string>& words) {
  const std::map<std::string, std::vector<std::string>> values_of{
      {"serve", {"--data", "--listen", "--config"}}, {"env", {"--data"}}, {"doctor", {"--data"}}};
  const std::map<std::string, std::vector<std::string>> flags_of{{"doctor", {"--clean"}}};
  Arguments arguments;
  if (words.empty() || words[0] == "help" || words[0] == "--help" || words[0] == "-h") return arguments;
  const auto values = values_of.find(words[0]);
  if (values == values_of.end())
    return invalid("there is no command '" + words[0] + "'; `trainyard help` lists them");
  arguments.command = words[0];
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (size_t i = 1; i < words.size(); ++i) {
    std::string name = words[i], value;
    const size_t equals = name.find('=');
    if (equals != std::string::npos) value = name.substr(equals + 1), name = name.substr(0, equals);
    if (name == "--help" || name == "-h") return Arguments{};
    if (const auto flags = flags_of.find(words[0]); flags != flags_of.end() && has(flags->second, name)) {
      arguments.flags[name] = true;
    } else if (!has(values->second, name)) {
      return invalid("`trainyard " + words[0] + "` does not know '" + name +
                     "'; `trainyard help` shows what it knows");
    } else if (equals == std::string::npos && i + 1 == words.size()) {
      return invalid(name + " needs a value");
    } else {
      arguments.values[name] = equals == std::string::npos ? words[++i] : value;
    }
  }
  return arguments;
}

Result<void> print_environment(const std::string& data) {
  const auto record = TRY(apps::read_server_record(data));
  std::fputs(apps::shell_exports(std::filesystem::absolute(data).string(), record).c_str(), stdout);
  return {};
}

Result<void> dispatch(Arguments& arguments) {
  const std::string data =
      arguments.values.count("--data") ? arguments.values["--data"] : apps::default_data_directory();
  if (arguments.command == "serve")
    return apps::serve({data, arguments.values["--config"], arguments.values["--listen"]});
  if (arguments.command == "env") return print_environment(data);
  if (arguments.command == "doctor") return apps::doctor(data, arguments.flags["--clean"]);
  std::fputs(kHelp, stdout);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  auto arguments = read_arguments({argv + 1, argv + argc});
  const auto done = arguments ? dispatch(*arguments) : Result<void>(arguments.error());
  if (done) return 0;
  std::fprintf(stderr, "trainyard: %s\n", done.error().message.c_str());
  return arguments ? 1 : 2;
}
