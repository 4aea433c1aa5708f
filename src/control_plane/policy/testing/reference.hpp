// The reference is a slow and obvious evaluator, for tests and the bench. It parses the JSON of a
// document again for each request, expands each statement into a set of texts, and matches
// wildcards with a table. It shares no code with evaluate().
//
// It accepts the documents that parse_policy() accepts, but only dates as YYYY-MM-DDThh:mm:ssZ,
// IPv4 ranges, and IPv6 addresses without "::".
//
// Threads: pure.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "policy/evaluate.hpp"

namespace trainyard::policy::reference {

using Texts = std::vector<std::string>;

inline Texts list_of(const Json& json) {
  Texts list;
  for (const Json& one : json.is_array() ? json : Json::array({json}))
    list.push_back(one.is_string() ? one.get<std::string>() : dump(one));
  return list;
}

// -- wildcards -----------------------------------------------------------------------------------

// A character of text, or a wildcard.
struct Token {
  std::string character;
  char wildcard = 0;
};

inline Texts characters(const std::string& text) {
  Texts list;
  for (const char c : text) {
    if (list.empty() || (uint8_t(c) & 0xc0) != 0x80) list.emplace_back();
    list.back() += c;
  }
  return list;
}

// Splits a pattern into tokens. Returns nullopt if a variable has no value.
inline std::optional<std::vector<Token>> tokens(const std::string& text, bool wildcards,
                                                bool variables, const ConditionValues& values) {
  std::vector<Token> list;
  const auto add = [&](const std::string& literal) {
    for (std::string& one : characters(literal)) list.push_back({std::move(one)});
  };
  for (size_t at = 0; at < text.size();) {
    if (variables && text.compare(at, 2, "${") == 0) {
      const size_t end = text.find('}', at);
      std::string inside = text.substr(at + 2, end - at - 2);
      at = end + 1;
      if (inside == "*" || inside == "?" || inside == "$") {
        add(inside);
        continue;
      }
      std::optional<std::string> value;
      if (const size_t comma = inside.find(", '"); comma != std::string::npos) {
        value = inside.substr(comma + 3, inside.size() - comma - 4);
        inside.resize(comma);
      }
      const auto found = values.find(inside);
      if (found.size() == 1) value = found[0];
      if (found.size() > 1 || !value) return std::nullopt;
      add(*value);
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() && (uint8_t(text[end]) & 0xc0) == 0x80) ++end;
    const std::string one = text.substr(at, end - at);
    if (wildcards && (one == "*" || one == "?"))
      list.push_back({"", one[0]});
    else
      list.push_back({one});
    at = end;
  }
  return list;
}

// Matches text with a table: can[i][j] is true if the first i tokens match the first j characters.
inline bool like(const std::vector<Token>& pattern, const Texts& text) {
  std::vector<std::vector<bool>> can(pattern.size() + 1, std::vector<bool>(text.size() + 1));
  can[0][0] = true;
  for (size_t i = 1; i <= pattern.size(); ++i)
    for (size_t j = 0; j <= text.size(); ++j) {
      const Token& token = pattern[i - 1];
      if (token.wildcard == '*')
        can[i][j] = can[i - 1][j] || (j > 0 && can[i][j - 1]);
      else if (j > 0)
        can[i][j] = can[i - 1][j - 1] && (token.wildcard == '?' || token.character == text[j - 1]);
    }
  return can[pattern.size()][text.size()];
}

inline std::vector<std::vector<Token>> arn_parts(const std::vector<Token>& pattern) {
  std::vector<std::vector<Token>> parts(1);
  for (const Token& token : pattern) {
    if (token.character == ":" && parts.size() < 6)
      parts.emplace_back();
    else
      parts.back().push_back(token);
  }
  return parts;
}

inline bool arn_like(const std::vector<Token>& pattern, const std::string& text) {
  if (!pattern.empty() &&
      std::ranges::all_of(pattern, [](const Token& one) { return one.wildcard == '*'; }))
    return true;
  std::vector<Token> literal;
  for (std::string& one : characters(text)) literal.push_back({std::move(one)});
  const auto patterns = arn_parts(pattern), parts = arn_parts(literal);
  if (patterns.size() != 6 || parts.size() != 6) return false;
  for (size_t i = 0; i < 6; ++i) {
    Texts plain;
    for (const Token& token : parts[i]) plain.push_back(token.character);
    if (!like(patterns[i], plain)) return false;
  }
  return true;
}

// -- conditions ----------------------------------------------------------------------------------

// Returns the bits of an address as '0' and '1'; "" for an invalid address.
inline std::string bits_of(const std::string& address) {
  unsigned part[8] = {};
  std::string bits;
  const auto add = [&](unsigned value, int count) {
    for (int bit = count - 1; bit >= 0; --bit) bits += (value >> bit) & 1 ? '1' : '0';
  };
  if (std::sscanf(address.c_str(), "%u.%u.%u.%u", part, part + 1, part + 2, part + 3) == 4)
    for (int i = 0; i < 4; ++i) add(part[i], 8);
  else if (std::sscanf(address.c_str(), "%x:%x:%x:%x:%x:%x:%x:%x", part, part + 1, part + 2,
                       part + 3, part + 4, part + 5, part + 6, part + 7) == 8)
    for (const unsigned one : part) add(one, 16);
  return bits;
}

inline bool in_range(const std::string& address, const std::string& range) {
  const std::string mine = bits_of(address), first = bits_of(range.substr(0, range.find('/')));
  if (mine.empty() || mine.size() != first.size()) return false;
  const size_t slash = range.find('/');
  const size_t prefix =
      slash == std::string::npos ? first.size() : size_t(std::atoi(range.c_str() + slash + 1));
  return mine.substr(0, prefix) == first.substr(0, prefix);
}

template <class T>
bool ordered(const std::string& how, const T& found, const T& wanted) {
  if (how == "Equals") return found == wanted;
  if (how == "LessThan") return found < wanted;
  if (how == "LessThanEquals") return found <= wanted;
  if (how == "GreaterThan") return found > wanted;
  return how == "GreaterThanEquals" && found >= wanted;
}

// Returns 1 for a match, 0 for no match, -1 if a variable has no value. `name` is the operator
// without Not, IfExists and quantifier.
inline int compare(const std::string& name, const std::string& found, const std::string& wanted,
                   bool variables, const ConditionValues& values) {
  if (name.starts_with("String") || name.starts_with("Arn")) {
    const bool wildcards = name == "StringLike" || name.starts_with("Arn");
    const bool ignore_case = name == "StringEqualsIgnoreCase";
    auto pattern = tokens(wanted, wildcards, variables, values);
    if (!pattern) return -1;
    if (name.starts_with("Arn")) return arn_like(*pattern, found);
    if (ignore_case)
      for (Token& token : *pattern) token.character = to_lower(token.character);
    return like(*pattern, characters(ignore_case ? to_lower(found) : found));
  }
  if (name == "Bool") return to_lower(found) == to_lower(wanted);
  if (name == "BinaryEquals") return to_base64(found) == wanted;
  if (name == "IpAddress") return in_range(found, wanted);
  if (name.starts_with("Date")) return ordered(name.substr(4), found, wanted);
  return ordered(name.substr(7), std::strtod(found.c_str(), nullptr),
                 std::strtod(wanted.c_str(), nullptr));
}

inline bool take(std::string& text, const std::string& part) {
  const size_t at = text.find(part);
  if (at != std::string::npos) text.erase(at, part.size());
  return at != std::string::npos;
}

inline bool holds(std::string name, const std::string& key, const Json& wanted, bool variables,
                  bool denies, const ConditionValues& values) {
  const auto span = values.find(key);
  const Texts found(span.begin(), span.end());
  if (name == "Null") {
    const Texts list = list_of(wanted);
    return std::ranges::find(list, found.empty() ? "true" : "false") != list.end();
  }
  const bool any = take(name, "ForAnyValue:"), all = take(name, "ForAllValues:");
  const bool if_exists = take(name, "IfExists"), negated = take(name, "Not");
  if (found.empty() && if_exists) return true;
  // Counts the values of the request that individually meet the operator.
  size_t good = 0, matched = 0, unknown = 0;
  for (const std::string& one : found) {
    bool match = false, missing = false;
    for (const std::string& want : list_of(wanted)) {
      const int result = compare(name, one, want, variables, values);
      if (result > 0) match = true;
      if (result < 0) missing = true;
    }
    matched += match;
    unknown += !match && missing;
    good += negated ? !match && (denies || !missing) : match;
  }
  if (any) return good > 0;
  if (all) return good == found.size();
  if (!negated) return matched > 0;
  return matched == 0 && (denies || unknown == 0);
}

// -- statements ----------------------------------------------------------------------------------

inline bool action_matches(const Json& statement, const Request& request) {
  const bool negated = statement.contains("NotAction");
  for (const std::string& one : list_of(statement[negated ? "NotAction" : "Action"]))
    if (like(*tokens(to_lower(one), true, false, {}), characters(to_lower(request.action))))
      return !negated;
  return negated;
}

inline bool resource_matches(const Json& statement, bool variables, const Request& request) {
  const bool negated = statement.contains("NotResource");
  if (!negated && !statement.contains("Resource")) return true;
  bool matched = false, unknown = false;
  for (const std::string& one : list_of(statement[negated ? "NotResource" : "Resource"])) {
    const auto pattern = tokens(one, true, variables, request.values);
    if (!pattern)
      unknown = true;
    else
      matched = matched || like(*pattern, characters(request.resource));
  }
  if (!negated) return matched;
  return !matched && !(unknown && statement["Effect"] == "Allow");
}

// Returns the names by which a Principal element may refer to the request's principal, each with
// the kind of match.
inline std::vector<std::pair<std::string, std::string>> names_of(const Request& request) {
  std::vector<std::pair<std::string, std::string>> names;
  const std::string wide = request.role_arn.empty() ? "direct" : "role";
  if (!request.principal_arn.empty()) names.emplace_back("AWS " + request.principal_arn, "direct");
  if (!request.service.empty()) names.emplace_back("Service " + request.service, "direct");
  if (!request.federated.empty()) names.emplace_back("Federated " + request.federated, "direct");
  const bool root = request.principal_arn == "arn:aws:iam::" + request.account + ":root";
  if (!request.role_arn.empty()) names.emplace_back("AWS " + request.role_arn, "role");
  names.emplace_back("AWS *", wide);
  if (!request.account.empty()) {
    names.emplace_back("AWS " + request.account, root ? "direct" : "account");
    names.emplace_back("AWS arn:aws:iam::" + request.account + ":root",
                       root ? "direct" : "account");
  }
  return names;
}

// Returns the kind of match: "", "account", "role" or "direct".
inline std::string principal_grant(const Json& statement, const Request& request) {
  const bool negated = statement.contains("NotPrincipal");
  if (!negated && !statement.contains("Principal")) return "direct";
  const Json& element = statement[negated ? "NotPrincipal" : "Principal"];
  std::set<std::string> listed, grants;
  if (element.is_string()) listed.insert("AWS *");
  if (element.is_object())
    for (const auto& [type, names] : element.items())
      for (const std::string& name : list_of(names)) listed.insert(type + " " + name);
  for (const auto& [name, grant] : names_of(request))
    if (listed.contains(name)) grants.insert(grant);
  const bool named = grants.contains("direct") || grants.contains("role");
  if (negated) return named ? "" : request.role_arn.empty() ? "direct" : "role";
  return grants.contains("direct")    ? "direct"
         : grants.contains("role")    ? "role"
         : grants.contains("account") ? "account"
                                      : "";
}

// Returns the effects of the matching statements of one type of policy: "deny", "allow direct",
// "allow role", "allow account".
inline std::set<std::string> facts(const std::vector<const Policy*>& policies,
                                   const Request& request) {
  std::set<std::string> found;
  for (const Policy* policy : policies) {
    const Json document = *parse_json(policy->document());
    const bool variables = document.value("Version", "2008-10-17") == "2012-10-17";
    const Json& statements = document["Statement"];
    for (const Json& statement : statements.is_array() ? statements : Json::array({statements})) {
      const bool denies = statement["Effect"] == "Deny";
      const std::string grant = principal_grant(statement, request);
      bool matches = !grant.empty() && action_matches(statement, request) &&
                     resource_matches(statement, variables, request);
      if (statement.contains("Condition"))
        for (const auto& [name, keys] : statement["Condition"].items())
          for (const auto& [key, wanted] : keys.items())
            matches = matches && holds(name, key, wanted, variables, denies, request.values);
      if (matches) found.insert(denies ? "deny" : "allow " + grant);
    }
  }
  return found;
}

inline Verdict evaluate(const Request& request, const Policies& policies) {
  const auto identity = facts(policies.identity, request),
             resource = facts(policies.resource, request);
  const auto session =
      policies.session ? facts(*policies.session, request) : std::set<std::string>{"allow direct"};
  const auto boundary = policies.boundary ? facts({policies.boundary}, request)
                                          : std::set<std::string>{"allow direct"};
  for (const auto* one : {&identity, &resource, &session, &boundary})
    if (one->contains("deny")) return Verdict::explicitly_denied;
  if (resource.contains("allow direct")) return Verdict::allowed;
  bool trust = false;
  for (const Policy* policy : policies.resource)
    trust = trust || policy->kind() == PolicyKind::trust;
  const bool base = resource.contains("allow role") ||
                    (!identity.empty() && (!trust || resource.contains("allow account")));
  return base && !session.empty() && !boundary.empty() ? Verdict::allowed
                                                       : Verdict::implicitly_denied;
}

}  // namespace trainyard::policy::reference
