# The question of the README: H100 on InfiniBand or MI300X on RoCE?
cd "$(dirname "$0")" && ${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)} compare h100.yaml mi300x.yaml
