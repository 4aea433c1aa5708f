#include "trainyard_api/job_template.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/json_record.hpp"
#include "base/text.hpp"

namespace trainyard::api::trainyard_api {
namespace {

constexpr auto kJobTemplate = json_record<JobTemplate>("job template", [](auto& side, auto& of) {
  side.if_set("description", of.description);
  side("request", of.request);
  side.if_set("secret_environment", of.secret_environment);
  side("saved_by", of.saved_by);
  side("saved", of.saved);
});

// Last words of names that suggest a secret; also "key" after a word in kKindsOfKeys.
constexpr std::string_view kSecretEnds[] = {"password", "passwd",     "passphrase",  "secret",
                                            "token",    "credential", "credentials", "apikey"};
constexpr std::string_view kKindsOfKeys[] = {"api", "access", "private", "secret", "signing"};

// Splits a name into words in lower case: both "AWS_SECRET_ACCESS_KEY" and "aws.secretAccessKey"
// into aws, secret, access and key.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  bool lower_before = false;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool letter = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if ((!letter || (upper && lower_before)) && !words.back().empty()) words.emplace_back();
    if (letter) words.back() += upper ? char(c - 'A' + 'a') : c;
    lower_before = letter && !upper;
  }
  if (words.back().empty() && words.size() > 1) words.pop_back();
  return words;
}

// Rejects members of the request whose names suggest a secret, unless their values are empty.
Result<void> check_names(const Json& request, const char* member) {
  if (!request.contains(member) || !request[member].is_object()) return {};
  for (const auto& [name, value] : request[member].items())
    if (names_secret(name) && value.is_string() && !value.get<std::string>().empty())
      return invalid(
          std::string(member) + ": the name '" + shorten(name, 200) +
          "' suggests a secret, and other users can read templates: leave the value out");
  return {};
}

}  // namespace

Json to_json(const JobTemplate& of) { return kJobTemplate.write(of); }
Result<JobTemplate> job_template_from_json(const Json& json) { return kJobTemplate.read(json); }

bool names_secret(std::string_view variable) {
  const auto words = words_of(variable);
  const std::string& last = words.back();
  if (std::ranges::find(kSecretEnds, last) != std::end(kSecretEnds)) return true;
  return last == "key" && words.size() > 1 &&
         std::ranges::find(kKindsOfKeys, words[words.size() - 2]) != std::end(kKindsOfKeys);
}

Result<void> check_no_secrets(const JobTemplate& of) {
  for (const std::string& name : of.secret_environment)
    if (of.request.contains("Environment") && of.request["Environment"].is_object() &&
        of.request["Environment"].contains(name))
      return invalid(
          "Environment: " + shorten(name, 200) +
          " is in SecretEnvironment, so each job provides its value: leave it out of the template");
  TRY(check_names(of.request, "Environment"));
  return check_names(of.request, "HyperParameters");
}

}  // namespace trainyard::api::trainyard_api
