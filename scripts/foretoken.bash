# foretoken.bash - completion for bash: commands, options, names, keys of scenarios
_foretoken_names() { # KIND: the names that `foretoken list KIND` knows
	foretoken list "$1" --json 2>/dev/null | sed -n 's/.*"name": "\([^"]*\)".*/\1/p'
}
_foretoken() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
	local kinds="gpus nodes fabrics sites models stacks ccl prices keys"
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		COMPREPLY=($(compgen -W "$(foretoken --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')" -- "$word"))
		return
	fi
	[ "$command $before" != "calibrate -s" ] || before=--store
	case $before in
	--set | --vary | -s | -v)
		COMPREPLY=($(compgen -S = -W "$(_foretoken_names keys)" -- "$word"))
		compopt -o nospace
		return ;;
	--gpu) COMPREPLY=($(compgen -W "$(_foretoken_names gpus)" -- "$word")); return ;;
	esac
	case $word in
	-*) COMPREPLY=($(compgen -W "$(foretoken "$command" --help | sed -n 's/^  \(-., \|    \)\(--[a-z][a-z-]*\).*/\2/p')" -- "$word")) ;;
	*)
		[ "$command" != list ] || COMPREPLY=($(compgen -W "$kinds" -- "$word"))
		[ "$command" != explain ] || COMPREPLY=($(compgen -W "$(_foretoken_names keys)" -- "$word"))
		[ "$command" != new ] || COMPREPLY=($(compgen -W "scenario gpu node fabric stack prices" -- "$word"))
		COMPREPLY+=($(compgen -f -- "$word")) ;;
	esac
}
complete -o filenames -F _foretoken foretoken
