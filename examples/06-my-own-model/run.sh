# A model given inline, and one as its config.json says.
cd "$(dirname "$0")" || exit
f=${FORETOKEN:-$(command -v ../../build/foretoken || echo foretoken)}
$f compare inline.yaml hugging-face.yaml || exit
echo
echo "half as many layers, changed on the command line:"
$f simulate inline.yaml --set model.num_hidden_layers=20 | head -8
