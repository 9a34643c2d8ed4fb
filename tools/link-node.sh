#!/bin/sh
# Links node_modules/.bin/node, which the scripts of package.json run, to the Node that `npm ci` installed. npm 9, which
# Debian and Ubuntu have, makes the link and then removes it, because the package for the other processor, which it skips,
# has a program of the same name.
cd "$(dirname "$0")/../node_modules" || exit
for node in node-linux-*/bin/node; do
  if [ -x "$node" ] && [ ! -e .bin/node ]; then ln -s "../$node" .bin/node; fi
done
