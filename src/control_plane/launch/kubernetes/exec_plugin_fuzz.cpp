// decoder: src/control_plane/launch/kubernetes/exec_plugin.cpp
//
// Reads any bytes as the output of an exec plugin, and as the `exec` of a kubeconfig: what is
// accepted can be sent in a header, and passed as arguments and variables of a program.
#include <algorithm>
#include <cstdint>

#include "base/check.hpp"
#include "launch/kubernetes/exec_plugin.hpp"

using namespace trainyard;
using namespace trainyard::launch;

namespace {

void check_credential(const ExecCredential& credential) {
  CHECK(!credential.token.empty() || !credential.certificate.empty(), "it can be used");
  CHECK(credential.certificate.empty() == credential.key.empty(), "a certificate has its key");
  CHECK(credential.token.size() <= kExecTokenBytesMax, "a token has its limit");
  CHECK(std::ranges::all_of(credential.token, [](char c) { return c > ' ' && c < 127; }),
        "a token ends no header");
}

void check_plugin(const ExecPlugin& plugin) {
  const auto passable = [](const std::string& text) { return text.find('\0') == text.npos; };
  CHECK(!plugin.command.empty() && passable(plugin.command), "the command is a name or a path");
  CHECK(std::ranges::all_of(plugin.arguments, passable), "arguments can be passed");
  for (const auto& [name, value] : plugin.environment)
    CHECK(!name.empty() && name.find('=') == name.npos && passable(name) && passable(value),
          "variables can be passed");
  CHECK(plugin.info.size() <= kExecInfoBytesMax && parse_json(plugin.info),
        "the plugin gets JSON of limited size");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* version :
       {"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"})
    if (const auto credential = read_exec_credential(text, version)) check_credential(*credential);
  if (const auto exec = parse_json(text))
    if (const auto plugin = read_exec_plugin(*exec, *exec, "/etc/trainyard")) check_plugin(*plugin);
  return 0;
}
