// Parses a document into statements, with one function for each element. The texts of errors are
// those of IAM, and for bucket policies those of S3.
#include <algorithm>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "policy/policy.hpp"
#include "policy/statement.hpp"

namespace trainyard::policy {
namespace {

constexpr std::string_view kCurrentVersion = "2012-10-17", kOldVersion = "2008-10-17";
constexpr size_t kAccountDigits = 12;

Error syntax_error() { return invalid("Syntax errors in policy."); }

size_t size_max(PolicyKind kind) {
  switch (kind) {
    case PolicyKind::identity:
      return kRoleInlineBytesMax;
    case PolicyKind::resource:
      return kBucketPolicyBytesMax;
    case PolicyKind::trust:
      return kTrustPolicyBytesMax;
  }
  return 0;
}

// Parses JSON. Errors: invalid, also for nesting beyond kDepthMax and for repeated members.
Result<Json> parse_document(std::string_view text) {
  bool refused = false;
  std::vector<std::set<std::string>> members(1);
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > int(kDepthMax)) refused = true;
    if (event == Json::parse_event_t::object_start) members.emplace_back();
    if (event == Json::parse_event_t::object_end) members.pop_back();
    if (event == Json::parse_event_t::key &&
        !members.back().insert(parsed.get<std::string>()).second)
      refused = true;
    return !refused;
  };
  Json document = Json::parse(text, watch, false);
  if (refused || document.is_discarded() || !document.is_object()) return syntax_error();
  return document;
}

Result<std::string> text_member(const Json& object, std::string_view name) {
  const auto found = object.find(name);
  if (found == object.end()) return std::string();
  if (!found->is_string()) return syntax_error();
  return found->get<std::string>();
}

// Reads a text, or an array of texts.
Result<std::vector<std::string>> texts(const Json& value) {
  std::vector<std::string> list;
  const size_t count = value.is_array() ? value.size() : 1;
  if (count > kValuesMax)
    return invalid("A policy element has more than " + std::to_string(kValuesMax) + " values.");
  for (size_t i = 0; i < count; ++i) {
    const Json& one = value.is_array() ? value[i] : value;
    if (!one.is_string()) return syntax_error();
    list.push_back(one.get<std::string>());
  }
  return list;
}

bool is_digits(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_account(std::string_view text) { return text.size() == kAccountDigits && is_digits(text); }

bool is_partition(std::string_view text) {
  return text == "aws" || text == "aws-cn" || text == "aws-us-gov" || text == "*";
}

// -- actions and resources -----------------------------------------------------------------------

Result<void> check_action(const std::string& action) {
  if (action == "*") return ok();
  const size_t colon = action.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == action.size())
    return invalid("Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc.");
  const std::string vendor = action.substr(0, colon);
  if (vendor.find_first_of("*? /") != std::string::npos)
    return invalid("Vendor " + shorten(vendor, 80) + " is not valid");
  return ok();
}

Result<void> check_resource(const std::string& resource, PolicyKind kind) {
  if (resource == "*") return ok();
  const auto parts = split(resource, ':');
  // A '*' at the end may replace all remaining components.
  const bool whole = parts.size() >= 6 || (parts.size() >= 3 && resource.ends_with('*'));
  if (!whole || parts[0] != "arn") {
    if (kind == PolicyKind::resource) return invalid("Policy has invalid resource");
    return invalid("Resource " + shorten(resource, 200) + " must be in ARN format or \"*\".");
  }
  if (!is_partition(parts[1]))
    return invalid("Partition \"" + shorten(parts[1], 80) + "\" is not valid for resource \"" +
                   shorten(resource, 200) + "\".");
  return ok();
}

// Returns the member NAME or NotNAME of a statement, or nullptr. Sets `negated` for NotNAME.
Result<const Json*> either(const Json& statement, const std::string& name, bool& negated) {
  const auto plain = statement.find(name), other = statement.find("Not" + name);
  if (plain != statement.end() && other != statement.end()) return syntax_error();
  negated = other != statement.end();
  if (plain == statement.end() && other == statement.end()) return nullptr;
  return negated ? &*other : &*plain;
}

Result<void> parse_actions(const Json& json, PolicyKind kind, Statement& statement) {
  const Json* found = TRY(either(json, "Action", statement.not_action));
  const auto missing =
      invalid(kind == PolicyKind::resource ? "Missing required field Action"
                                           : "Policy statement must contain actions.");
  if (!found) return missing;
  const auto actions = TRY(texts(*found));
  if (actions.empty()) return missing;
  for (const std::string& action : actions) {
    TRY(check_action(action));
    if (kind == PolicyKind::trust && !to_lower(action).starts_with("sts:"))
      return invalid("AssumeRole policy may only specify STS AssumeRole actions.");
    statement.actions.push_back(TRY(Pattern::compile(action, {.lower_case = true})));
  }
  return ok();
}

Result<void> parse_resources(const Json& json, PolicyKind kind, bool variables,
                             Statement& statement) {
  const Json* found = TRY(either(json, "Resource", statement.not_resource));
  if (kind == PolicyKind::trust) {
    if (found) return invalid("Has prohibited field Resource");
    return ok();
  }
  const auto missing =
      invalid(kind == PolicyKind::resource ? "Missing required field Resource"
                                           : "Policy statement must contain resources.");
  if (!found) return missing;
  const auto resources = TRY(texts(*found));
  if (resources.empty()) return missing;
  for (const std::string& resource : resources) {
    TRY(check_resource(resource, kind));
    statement.resources.push_back(TRY(Pattern::compile(resource, {.variables = variables})));
  }
  return ok();
}

// -- principals ----------------------------------------------------------------------------------

Error invalid_principal(PolicyKind kind, std::string_view type, std::string_view value) {
  if (kind == PolicyKind::resource) return invalid("Invalid principal in policy");
  return invalid("Invalid principal in policy: \"" + shorten(type, 40) + "\":\"" +
                 shorten(value, 200) + "\"");
}

// Adds a principal of type "AWS": an account, its root, a user, a role or a session.
bool add_aws_principal(const std::string& value, PrincipalSet& set) {
  if (value == "*") return set.everyone = true;
  if (is_account(value)) return set.accounts.push_back(value), true;
  const auto parts = split(value, ':');
  if (parts.size() != 6 || parts[0] != "arn" || !is_partition(parts[1]) || !parts[3].empty() ||
      !is_account(parts[4]) || value.find_first_of("*?") != std::string::npos)
    return false;
  const std::string_view name = parts[5];
  if (parts[2] == "iam" && name == "root") return set.accounts.emplace_back(parts[4]), true;
  const bool known = parts[2] == "iam" ? name.starts_with("user/") || name.starts_with("role/")
                                       : parts[2] == "sts" && (name.starts_with("assumed-role/") ||
                                                               name.starts_with("federated-user/"));
  if (!known || name.ends_with('/')) return false;
  set.arns.push_back(value);
  return true;
}

bool add_named_principal(const std::string& value, std::vector<std::string>& list) {
  const bool plain = !value.empty() && value.find_first_of("*? ") == std::string::npos &&
                     value.find_first_of(".:") != std::string::npos;
  if (plain) list.push_back(value);
  return plain;
}

bool add_principal(const std::string& type, const std::string& value, PrincipalSet& set) {
  if (type == "AWS") return add_aws_principal(value, set);
  if (type == "Service") return add_named_principal(value, set.services);
  if (type == "Federated") return add_named_principal(value, set.federated);
  return false;
}

Result<void> parse_principal(const Json& json, PolicyKind kind, Statement& statement) {
  const Json* found = TRY(either(json, "Principal", statement.not_principal));
  if (kind == PolicyKind::identity) {
    if (found) return invalid("Policy document should not specify a principal.");
    return ok();
  }
  if (!found) return invalid("Missing required field Principal");
  if (kind == PolicyKind::trust && statement.not_principal)
    return invalid("AssumeRolePolicy contained invalid field NotPrincipal");
  PrincipalSet set;
  if (found->is_string()) {
    if (*found != "*") return invalid_principal(kind, "AWS", found->get<std::string>());
    set.everyone = true;
  } else if (!found->is_object() || found->empty()) {
    return invalid("Missing required field Principal");
  } else {
    for (const auto& [type, values] : found->items())
      for (const std::string& value : TRY(texts(values)))
        if (!add_principal(type, value, set)) return invalid_principal(kind, type, value);
  }
  statement.principal = std::move(set);
  return ok();
}

// -- statements ----------------------------------------------------------------------------------

Result<void> parse_conditions(const Json& json, bool variables, Statement& statement) {
  const auto found = json.find("Condition");
  if (found == json.end()) return ok();
  if (!found->is_object()) return syntax_error();
  for (const auto& [name, keys] : found->items()) {
    if (!keys.is_object()) return syntax_error();
    TRY(parse_operator(name));
    for (const auto& [key, values] : keys.items())
      statement.conditions.push_back(TRY(Condition::compile(name, key, values, variables)));
  }
  return ok();
}

Result<void> check_sid(const std::string& sid, PolicyKind kind) {
  const bool plain = std::ranges::all_of(sid, [](unsigned char c) { return std::isalnum(c); });
  if (kind == PolicyKind::resource || plain) return ok();
  return invalid(
      "Statement IDs (SID) must be alpha-numeric. Check that your input satisfies the regular "
      "expression [0-9A-Za-z]*");
}

Result<Statement> parse_statement(const Json& json, PolicyKind kind, bool variables) {
  static const std::set<std::string, std::less<>> kMembers = {
      "Sid",       "Effect",      "Action",    "NotAction",   "Resource",
      "Principal", "NotResource", "Condition", "NotPrincipal"};
  if (!json.is_object()) return syntax_error();
  for (const auto& [name, unused] : json.items())
    if (!kMembers.contains(name)) return syntax_error();
  Statement statement;
  statement.sid = TRY(text_member(json, "Sid"));
  TRY(check_sid(statement.sid, kind));
  const std::string effect = TRY(text_member(json, "Effect"));
  if (effect.empty()) return invalid("Missing required field Effect");
  if (effect != "Allow" && effect != "Deny")
    return invalid("Invalid effect: " + shorten(effect, 80));
  statement.effect = effect == "Allow" ? Effect::allow : Effect::deny;
  TRY(parse_principal(json, kind, statement));
  TRY(parse_actions(json, kind, statement));
  TRY(parse_resources(json, kind, variables, statement));
  TRY(parse_conditions(json, variables, statement));
  return statement;
}

Result<std::vector<Statement>> parse_statements(const Json& document, PolicyKind kind,
                                                bool variables) {
  const auto found = document.find("Statement");
  if (found == document.end() || (found->is_array() && found->empty()))
    return invalid("Missing required field Statement");
  const size_t count = found->is_array() ? found->size() : 1;
  if (count > kStatementsMax)
    return invalid("A policy has more than " + std::to_string(kStatementsMax) + " statements.");
  std::vector<Statement> statements;
  std::set<std::string> sids;
  for (size_t i = 0; i < count; ++i) {
    statements.push_back(
        TRY(parse_statement(found->is_array() ? (*found)[i] : *found, kind, variables)));
    const std::string& sid = statements.back().sid;
    if (!sid.empty() && !sids.insert(sid).second)
      return invalid("Statement IDs (SID) in a single policy must be unique.");
  }
  return statements;
}

}  // namespace

Result<std::shared_ptr<const Policy>> parse_policy(std::string_view json, PolicyKind kind) {
  if (json.size() > kDocumentBytesMax || policy_size(json) > size_max(kind))
    return exhausted("Cannot exceed quota for PolicySize: " + std::to_string(size_max(kind)));
  const auto document = parse_document(json);
  if (!document || !is_utf8(json)) {
    if (kind == PolicyKind::resource)
      return invalid("Policies must be valid JSON and the first byte must be '{'");
    return syntax_error();
  }
  for (const auto& [name, unused] : document->items())
    if (name != "Version" && name != "Id" && name != "Statement") return syntax_error();
  std::string version = TRY(text_member(*document, "Version"));
  if (version.empty()) version = kOldVersion;
  if (version != kCurrentVersion && version != kOldVersion)
    return invalid("The policy must contain a valid version string");
  std::string id = TRY(text_member(*document, "Id"));
  auto statements = TRY(parse_statements(*document, kind, version == kCurrentVersion));
  return std::shared_ptr<const Policy>(std::make_shared<Policy>(
      kind, std::string(json), std::move(version), std::move(id), std::move(statements)));
}

}  // namespace trainyard::policy
