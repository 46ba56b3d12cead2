#!/bin/sh
# A system that takes part in a campaign with curl and a shell: it asks for actions, and tells what came
# of them. Needs a POSIX shell, curl 7.82 or newer (--json), sed and awk.
set -eu

visitors=${VISITORS:-20}

# The service that REVAR_ADDRESS names, or one of our own, on loopback and for now.
if [ -z "${REVAR_ADDRESS:-}" ]; then
  folder=$(mktemp -d)
  revar serve --storage "sqlite:///$folder/campaigns.db" --port 0 >"$folder/said" &
  service=$!
  trap 'kill "$service"; wait "$service"; rm -rf "$folder"' EXIT
  until grep -q http "$folder/said"; do sleep 0.1; done
  REVAR_ADDRESS=$(awk '{ print $NF }' "$folder/said")
fi

# call PATH [JSON]: POST with a body, GET without one; prints the reply.
call() {
  if [ -n "${REVAR_TOKEN:-}" ]; then set -- "$@" -H "Authorization: Bearer $REVAR_TOKEN"; fi
  path=$1
  shift
  if [ $# -gt 0 ] && [ "${1#\{}" != "$1" ]; then
    body=$1
    shift
    curl -sS --fail-with-body --retry 5 --retry-connrefused --json "$body" "$@" "$REVAR_ADDRESS/api$path"
  else
    curl -sS --fail-with-body --retry 5 --retry-connrefused "$@" "$REVAR_ADDRESS/api$path"
  fi
}

# field NAME: the number or word of that field in the JSON on standard input.
field() {
  sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"
}

campaign="shell-$$"
call /campaigns "{
  \"name\": \"$campaign\", \"horizon\": 2, \"episodes\": $visitors, \"seed\": 1,
  \"policy\": [
    {\"state\": \"home\", \"probabilities\": [0.8, 0.2]},
    {\"state\": \"cart\", \"probabilities\": [0.5, 0.5]}
  ]
}" >/dev/null
echo "$visitors visitors; watch them at $REVAR_ADDRESS/campaigns/$campaign"

count=0
while [ "$count" -lt "$visitors" ]; do
  count=$((count + 1))
  episode=$(call "/campaigns/$campaign/episodes" '{}' | field episode)
  here="/campaigns/$campaign/episodes/$episode"

  action=$(call "$here/act" '{"step": 0, "state": "home"}' | field action)
  # Action 1 leads on to the cart, action 0 to a small sale at once.
  if [ "$action" = 1 ]; then
    call "$here/reward" '{"step": 0, "reward": 0, "next_state": "cart"}' >/dev/null
    action=$(call "$here/act" '{"step": 1, "state": "cart"}' | field action)
    reward=$(awk -v n="$count" -v a="$action" 'BEGIN { srand(n); print a ? 10 * rand() : 3 }')
    call "$here/reward" "{\"step\": 1, \"reward\": $reward, \"next_state\": null}" >/dev/null
  else
    reward=$(awk -v n="$count" 'BEGIN { srand(n + 1000); print 1 + rand() }')
    call "$here/reward" "{\"step\": 0, \"reward\": $reward, \"next_state\": null}" >/dev/null
  fi
done

estimate=$(call "/campaigns/$campaign/estimate")
echo "estimated value: $(echo "$estimate" | field value)"
echo "95% interval: $(echo "$estimate" | field low) to $(echo "$estimate" | field high)"
echo "finished: $(call "/campaigns/$campaign" | field episodes) of $visitors"
